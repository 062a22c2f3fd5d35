# frozen_string_literal: true

require "pando/events"
require "pando/pages/recording"
require "pando/sys"
require "pando/sys/memory"
require "pando/yjit"

module Pando
  module Pages
    # Watches which pages become private to its worker, during some jobs or none (just the present state), and writes a
    # Recording. Owned by the worker, which goes on serving; an error ends the recording and nothing else.
    class Recorder
      JOBS = (0..1000)
      SECONDS = (0..3600)

      # @param worker [Cluster::Worker]
      # @param order [String] a record: jobs, seconds
      # @param descriptors [Array<Integer>] of the file that takes the recording, and of a pipe that gets a byte for
      #   each job and ends with the recording. The recorder closes both.
      # @return [Recorder, nil] nil: it is over already
      def self.start(worker, order, descriptors)
        _, wanted = Cluster::Control::Line.decode(order)
        jobs, seconds = wanted&.values_at("jobs", "seconds")&.map { |text| Integer(text.to_s, 10, exception: false) }
        if descriptors.size == 2 && JOBS.cover?(jobs) && SECONDS.cover?(seconds)
          files = descriptors.map { |fd| IO.for_fd(fd, "wb", autoclose: false) }
          return new(worker, jobs, seconds, *files.each { |file| file.autoclose = true }).start
        end

        refuse(descriptors)
      rescue SystemCallError # a descriptor is not open for writing
        refuse(descriptors)
      end

      def self.refuse(descriptors)
        descriptors.each { |fd| Sys.close_fd(fd) }
        nil
      end
      private_class_method :refuse

      def initialize(worker, jobs, seconds, file, progress)
        @worker = worker
        @wanted = jobs
        @began = Sys.now
        @deadline = @began + seconds
        @file = file
        @progress = progress
        @jobs = []
      end

      def start
        @facts = { pid: Process.pid, slot: @worker.slot, generation: @worker.generation, served: @worker.requests,
                   ruby: RUBY_DESCRIPTION, minor_gcs: GC.stat(:minor_gc_count), major_gcs: GC.stat(:major_gc_count) }
        @yjit = YJIT.enabled? && RubyVM::YJIT.respond_to?(:runtime_stats)
        @blocks = compiled_blocks
        Sys.watch_pages
        @wanted.zero? ? finish : self
      rescue StandardError => e
        give_up(e)
      end

      # @param request [Array(String, String), nil] verb and subject
      # @return [Recorder, nil] nil: it is over
      def job_finished(request)
        Sys.watch_next_job
        before = @blocks
        @blocks = compiled_blocks
        @jobs << { request: request.to_a.join(" "), compiled: (@blocks - before if @yjit) }
        @progress.write_nonblock(".", exception: false)
        @jobs.size < @wanted ? self : finish
      rescue StandardError => e # the command has gone, for instance
        give_up(e)
      end

      # Called at each turn of the worker's loop.
      # @return [Recorder, nil] nil: it is over
      def tick = Sys.now < @deadline ? self : finish("its time was over")

      # @param cut_short [String, nil] the reason if it ends early
      # @return [nil]
      def finish(cut_short = nil)
        steps, pages, all = Sys.watched_pages
        cut_short ||= "there is more than a recording can hold" unless all
        usage = Sys::Memory.usage(Process.pid)
        recording(steps, pages, private: usage&.private, pss: usage&.pss, cut_short: cut_short).write(@file)
        close
      rescue StandardError => e
        give_up(e)
      end

      private

      def recording(steps, pages, more)
        facts = @facts.merge(more, compiler_facts, seconds: (Sys.now - @began).round(3),
                                                   minor_gcs_after: GC.stat(:minor_gc_count),
                                                   major_gcs_after: GC.stat(:major_gc_count))
        Recording.new("facts" => record("facts", facts), "jobs" => @jobs.map { |job| record("job", job) }.join,
                      "maps" => File.binread("/proc/self/maps"), "heap" => Sys.heap_pages,
                      "steps" => steps, "pages" => pages)
      end

      # The metadata (where each compiled block begins, what jumps to it) is in malloc's memory, where it cannot be told
      # from other data.
      def compiler_facts
        return {} unless @yjit

        { jit: "YJIT", jit_code: compiler_stats[:code_region_size], jit_metadata: compiler_stats[:yjit_alloc_size] }
      end

      def compiled_blocks = compiler_stats[:compiled_block_count].to_i
      def compiler_stats = (@yjit && RubyVM::YJIT.runtime_stats) || {}

      def record(name, pairs) = Cluster::Control::Line.encode(name, pairs)

      def give_up(error)
        Sys.watched_pages
        Events.emit("pages.failed", slot: @worker.slot, generation: @worker.generation, pid: Process.pid,
                                    reason: error.message)
        close
      end

      def close
        [@file, @progress].each(&:close)
        nil
      end
    end
  end
end
