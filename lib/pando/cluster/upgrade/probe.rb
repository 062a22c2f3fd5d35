# frozen_string_literal: true

require "pando/cluster/upgrade/process_image"
require "pando/cluster/upgrade/rehearsal"

module Pando
  module Cluster
    class Upgrade
      # The process in which another image tries whether it could take over. What it says about itself is not
      # believed before all of it is there and can be read; it has a deadline.
      #
      # Owned by Upgrade, in the monitor.
      #
      # @api private
      class Probe
        # Seconds for all: it loads the configuration.
        PATIENCE = 30.0
        # Bytes that are read of what it says, and of what it complains.
        REPORT_BYTES = 4 * 1_048_576
        WORDS_BYTES = 16_384

        # How it went: the image, or why there is none.
        #
        #   version   of the other Pando
        #   reason    why it cannot take over, nil: it can
        #   words     what it wrote to its standard error
        Outcome = Struct.new(:image, :version, :reason, :words, keyword_init: true)

        # @param state [State] written as it is now
        # @param poller [Sys::Poller] that wakes the monitor up when there is news
        # @yieldparam spawn [Proc] to be called with a command and the variables, in the right folder
        # @raise [Pando::Error, SystemCallError] it cannot be started
        def initialize(state, poller)
          @poller = poller
          @deadline = Sys.now + PATIENCE
          @pipes = {}
          theirs = [IO.for_fd(Sys.sealed_memory("pando-state", state.to_s)), pipe, pipe]
          yield(->(command, variables) { start(command, variables, theirs, state.memories) })
        rescue StandardError
          @pipes.each_key(&:close)
          raise
        ensure
          theirs&.each(&:close)
        end

        # Called at each turn of the monitor's loop.
        # @return [Outcome, nil] nil: not yet
        def proceed(now = Sys.now)
          @pipes.each { |pipe, text| read(pipe, text) }
          end_late if now >= @deadline
          conclude if @process.reap
        end

        # @return [Float]
        def due = @deadline

        # Nobody wants to know any more. It is reaped as strangers are.
        def give_up
          @process.signal("KILL")
          close
        end

        private

        # @return [IO] its end of one that we read
        def pipe
          ours, theirs = IO.pipe
          @pipes[ours] = +""
          theirs
        end

        def start(command, variables, theirs, memories)
          environment = variables.merge(Resumption::VARIABLE => Rehearsal::VALUE).map { |pair| pair.join("=") }
          memory, report, words = theirs
          @process = Sys::Pidfd.new(Sys.spawn(command, environment, [words, memory, report, *memories], 2))
          [@process, *@pipes.keys].each { |io| @poller.add(io, [:probe, nil]) }
        end

        def read(pipe, text)
          return if pipe.closed?

          loop do
            chunk = pipe.read_nonblock(65_536, exception: false)
            return if chunk == :wait_readable
            return forget(pipe) if chunk.nil? || text.bytesize + chunk.bytesize > REPORT_BYTES

            text << chunk
          end
        end

        def forget(pipe)
          @poller.remove(pipe)
          pipe.close
        end

        def end_late
          @late = true
          @deadline = Float::INFINITY
          @process.signal("KILL")
        end

        def conclude
          @pipes.each { |pipe, text| read(pipe, text) }
          report, words = @pipes.values
          close
          words = words.byteslice(0, WORDS_BYTES).force_encoding(Encoding::UTF_8).scrub("?")
          outcome = @late ? Outcome.new(reason: "it was not ready within #{PATIENCE.round} s") : judge(report, words)
          outcome.words = words
          outcome
        end

        def close
          @pipes.each_key { |pipe| forget(pipe) unless pipe.closed? }
          @poller.remove(@process)
          @process.close
        end

        def judge(report, words)
          return Outcome.new(reason: untold(words)) if report.empty?

          document = Document.parse(report)
          return Outcome.new(reason: document.one("failed").text(:reason)) if document.any("failed")

          Outcome.new(image: ProcessImage.from_state(document), version: document.one("ready").text(:version))
        rescue Unreadable => e
          Outcome.new(reason: "its report: #{e.message}")
        end

        # What Ruby or Bundler complains of, if it was not heard of again.
        def untold(words)
          first = words.lines.map(&:strip).find { |line| !line.empty? }
          ["it ended before it had read the state", *first].join(": ")
        end
      end
    end
  end
end
