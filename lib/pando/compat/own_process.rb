# frozen_string_literal: true

require "pando/native"

module Pando
  module Compat
    # Lets a process of its own work something out and end: what it loads for that is gone with it.
    #
    # Used by Notices, in the monitor before it opens anything.
    #
    # @api private
    module OwnProcess
      # Seconds that it has.
      PATIENCE = 5.0

      class << self
        # @yieldreturn [String]
        # @return [String, nil] what the block returned; nil: it raised, took too long, or there is no process to be had
        def call(&block)
          reader, writer = IO.pipe
          Sys.probe_fork
          pid = Process.fork { answer(reader, writer, &block) }
          writer.close
          read(reader)
        rescue SystemCallError
          nil
        ensure
          [reader, writer].compact.each(&:close)
          finish(pid) if pid
        end

        private

        def answer(reader, writer)
          reader.close
          writer.write(yield)
          Process.exit!(true)
        rescue Exception # rubocop:disable Lint/RescueException
          Process.exit! # nothing of the monitor's may run here
        end

        def read(reader)
          text = +""
          deadline = now + PATIENCE
          loop do
            return unless IO.select([reader], nil, nil, [deadline - now, 0].max)

            text << reader.readpartial(65_536)
          end
        rescue EOFError
          text.empty? ? nil : text.force_encoding(Encoding::UTF_8)
        end

        # It has ended, or takes too long.
        def finish(pid)
          Process.kill(:KILL, pid)
          Process.wait(pid)
        rescue SystemCallError
          nil # the application ignores SIGCHLD
        end

        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
