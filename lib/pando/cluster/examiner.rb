# frozen_string_literal: true

module Pando
  module Cluster
    # Has it found out where a process stands that no longer answers: by a short-lived process of
    # its own, since a debugger takes its time and the files of a stuck process may be stuck as
    # well. The monitor only waits for the text, and not for ever.
    #
    # Owned by the monitor.
    #
    # @api private
    class Examiner
      # Seconds for one examination.
      PATIENCE = 10.0
      # What is read of the text; less than a pipe holds, so that its writer need not wait for us.
      TEXT_BYTES = 32_768
      # What the process must not inherit: it is none of the application's.
      UNSET = %w[RUBYOPT RUBYLIB LD_PRELOAD DEBUGINFOD_URLS].freeze

      Examination = Struct.new(:process, :pipe, :deadline, :finish)

      # @param command [Array<String>, nil] see Payload#examination_command
      def initialize(poller, command)
        @poller = poller
        @command = command
        @running = []
      end

      # @yieldparam text [String, nil] later, or at once when nothing can be found out
      def examine(pid, &finish)
        start(pid, finish)
      rescue SystemCallError
        yield nil
      end

      # Called at each turn of the monitor's loop.
      def proceed(now = Sys.now)
        @running.dup.each do |one|
          end_late(one, now) if now >= one.deadline
          finish(one) if one.process.reap
        end
      end

      def due = @running.map(&:deadline).min

      private

      def start(pid, finish)
        return finish.call(nil) unless @command

        ours, theirs = IO.pipe
        child = Sys.spawn([*@command, pid.to_s], environment, [theirs])
        process = Sys::Pidfd.new(child)
        @poller.add(process, [:examined, nil])
        @running << Examination.new(process, ours, Sys.now + PATIENCE, finish)
      rescue SystemCallError
        ours&.close
        raise
      ensure
        theirs&.close
      end

      def end_late(one, now)
        one.deadline = now + PATIENCE
        one.process.signal("KILL")
      end

      def environment = ENV.to_h.except(*UNSET).map { |name, text| "#{name}=#{text}" }

      def finish(one)
        @running.delete(one)
        @poller.remove(one.process)
        one.process.close
        one.finish.call(text(one.pipe))
      ensure
        one.pipe.close
      end

      def text(pipe)
        text = pipe.read_nonblock(TEXT_BYTES, exception: false)
        text.force_encoding(Encoding::UTF_8).scrub("?") if text.is_a?(String)
      end
    end
  end
end
