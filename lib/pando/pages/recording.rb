# frozen_string_literal: true

require "pando/cluster/control/line"
require "pando/errors"
require "pando/sys"
require "pando/sys/memory"
require "pando/yjit"

module Pando
  module Pages
    # Watches which pages become private to its worker, during some jobs or none (just the present state), and writes a
    # Recording. Owned by the worker, which goes on serving; an error ends the recording and nothing else. A worker with
    # threads calls it from all of them, also while one of them hands the recording over.
    class Recorder
      JOBS = (0..1000)
      SECONDS = (0..3600)
      # What the pipe to the command gets after each job, and at the end: a child that the application has forked may
      # hold the pipe open.
      STEP = "."
      OVER = "!"

      # @param order [String] a record: jobs, seconds
      # @param descriptors [Array<Integer>] of the file that takes the recording, and of a pipe that gets a byte for
      #   each job and one when the recording is over. The recorder closes both. None: the process has no room for them.
      # @return [Recorder, nil] nil: it is over already
      def self.start(worker, order, descriptors)
        _, wanted = Cluster::Control::Line.decode(order)
        jobs, seconds = wanted&.values_at("jobs", "seconds")&.map { |text| Integer(text.to_s, 10, exception: false) }
        unless descriptors.size == 2 && JOBS.cover?(jobs) && SECONDS.cover?(seconds)
          lack = Errno::EMFILE.new.message if descriptors.empty?
          return refuse(worker, descriptors, lack || "the order is malformed")
        end

        files = take(worker, descriptors) or return
        new(worker, jobs, seconds, *files).start
      end

      # @return [Array<IO>, nil] nil: a descriptor is not open for writing
      def self.take(worker, descriptors)
        files = descriptors.map { |fd| IO.for_fd(fd, "wb", autoclose: false) }
        files.each { |file| file.autoclose = true }
      rescue SystemCallError => e
        refuse(worker, descriptors, e.message)
      end

      def self.refuse(worker, descriptors, reason)
        descriptors.each { |fd| Sys.close_fd(fd) }
        worker.report(:pages_failed, text: reason)
        nil
      end
      private_class_method :take, :refuse

      def initialize(worker, jobs, seconds, file, progress)
        @worker = worker
        @wanted = jobs
        @began = Sys.now
        @deadline = @began + seconds
        @file = file
        @progress = progress
        @jobs = []
        @lock = Mutex.new
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

      # Called by the thread that has done the job. Once the recording is over, no thread waits until it is written.
      # @return [Recorder, nil] nil: it is over
      def job_finished(request)
        return if @over

        unless_over do
          add_job(request)
          @jobs.size < @wanted ? self : hand_over
        end
      end

      # Called at each turn of the worker's loop.
      # @return [Recorder, nil] nil: it is over
      def tick = unless_over { Sys.now < @deadline ? self : hand_over("its time was over") }

      # @param cut_short [String, nil] the reason if it ends early
      # @return [nil]
      def finish(cut_short = nil) = unless_over { hand_over(cut_short) }

      private

      def unless_over
        @lock.synchronize do
          yield unless @over
        rescue StandardError => e # the command has gone, for instance
          give_up(e)
        end
      end

      def add_job(request)
        Sys.watch_next_job
        before = @blocks
        @blocks = compiled_blocks
        @jobs << { request: request.to_a.join(" "), compiled: (@blocks - before if @yjit) }
        @progress.write_nonblock(STEP, exception: false)
      end

      def hand_over(cut_short = nil)
        @over = true
        steps, pages, all = Sys.watched_pages
        cut_short ||= "there is more than a recording can hold" unless all
        usage = Sys::Memory.usage(Process.pid)
        recording(steps, pages, private: usage&.private, pss: usage&.pss, cut_short: cut_short).write(@file)
        @file.flush # reports a full disk
        close
      end

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
        @over = true
        Sys.watched_pages
        @worker.report(:pages_failed, text: error.message)
        close
      end

      # The command reads the file once it has the last byte.
      def close
        close_file
        @progress.write_nonblock(OVER, exception: false)
        nil
      rescue Errno::EPIPE # the command has gone
        nil
      ensure
        @progress.close
      end

      # What its buffer still holds after a failure cannot be written now either. It is closed all the same.
      def close_file
        @file.close
      rescue SystemCallError
        nil
      end
    end

    # What a worker has recorded about its own memory: a file that the worker writes and the command reads. Tables of
    # numbers have the layout of the C code (see ext/pando/sys/page_watch.h), because both ends run on one machine;
    # texts are records as on the control socket. The reader checks everything.
    class Recording
      # The file is incomplete, or is no recording.
      class Broken < Pando::Error; end

      Line = Cluster::Control::Line
      # A look at the pages: the number of the job before it, what made pages private, and figures of the look.
      Step = Struct.new(:job, :cause, :faults, :fresh, :gone, :microseconds)
      # A private page: its number, whether it belongs to a file, and the index of the step that found it.
      Page = Struct.new(:number, :of_file, :step)

      MAGIC = "pando pages 1\n"
      PARTS = %w[facts jobs maps heap steps pages].freeze
      LARGEST = 1 << 27 # bytes of a part
      CAUSES = %i[before job minor_gc major_gc mixed].freeze
      STEP_BITS = 18

      attr_reader :parts

      def initialize(parts)
        @parts = parts
      end

      def write(io)
        io.write(MAGIC, *PARTS.flat_map { |name| [[parts.fetch(name).bytesize].pack("Q<"), parts.fetch(name)] })
      end

      # @param io [IO] @return [Recording]
      # @raise [Broken]
      def self.read(io)
        raise Broken, "the worker has written nothing: it ended, or could not" unless io.read(MAGIC.bytesize) == MAGIC

        new(PARTS.to_h { |name| [name, part(io, name)] })
      end

      def self.part(io, name)
        size = io.read(8)&.then { |bytes| bytes.unpack1("Q<") if bytes.bytesize == 8 }
        raise Broken, "#{name} are missing" unless size&.<=(LARGEST)

        bytes = size.zero? ? "" : io.read(size)
        raise Broken, "#{name} are cut off" unless bytes&.bytesize == size

        bytes
      end
      private_class_method :part

      def facts = @facts ||= Line.decode(parts["facts"])&.last || raise(Broken, "the facts are malformed")

      # @return [Array<Hash{String => String}>] of each job: "request", "compiled"
      def jobs
        @jobs ||= job_lines.map { |line| Line.decode(line)&.last || raise(Broken, "a job is malformed") }
      end

      def steps
        @steps ||= numbers("steps", "L*").each_slice(6).map do |job, cause, *rest|
          raise Broken, "a step has an unknown cause" unless CAUSES[cause] && rest.size == 4
          raise Broken, "a step belongs to no job" if job > jobs.size + 1 # the last steps may follow the last job

          Step.new(job, CAUSES[cause], *rest)
        end
      end

      # @return [Array<Integer>] addresses of Ruby's heap pages
      def heap = numbers("heap", "Q*")

      # @yieldparam page [Page] the same object each time; in rising order
      def each_page
        page = Page.new
        numbers("pages", "Q*").each do |packed|
          page.number = packed >> (STEP_BITS + 1)
          page.of_file = packed[STEP_BITS] == 1
          page.step = packed & ((1 << STEP_BITS) - 1)
          raise Broken, "a page belongs to no step" unless page.step < steps.size

          yield page
        end
      end

      private

      # Each one becomes objects that are far larger than the line.
      def job_lines
        lines = parts["jobs"].each_line.first(Recorder::JOBS.end + 1)
        raise Broken, "there are more jobs than a recording has" if lines.size > Recorder::JOBS.end

        lines
      end

      def numbers(part, format) = parts.fetch(part).unpack(format)
    end
  end
end
