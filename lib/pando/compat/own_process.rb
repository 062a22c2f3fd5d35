# frozen_string_literal: true

require "pando/native"

module Pando
  module Compat
    # Runs a block in a separate process that ends afterwards, so that what the block loads takes no memory here.
    #
    # Notices uses it in the monitor before the monitor opens anything.
    #
    # @api private
    module OwnProcess
      # Seconds that the process may take.
      PATIENCE = 5.0

      class << self
        # @yieldreturn [String]
        # @return [String, nil] the block's return value; nil: it raised or took too long, or the fork failed
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
          Process.exit! # skip the monitor's at_exit blocks
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

        # Ends the process, which may have ended already.
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
