# frozen_string_literal: true

require "io/wait"
require "json"
require "pando/doctor/lazy_state/calls"
require "pando/doctor/lazy_state/observation"
require "pando/doctor/lazy_state/pages"
require "pando/doctor/lazy_state/result"

module Pando
  module Doctor
    module LazyState
      # Makes the measurements in forked children, one after the other: each of them would show in the others,
      # and none must show in this process.
      #
      # @api private
      class Examination
        # A child failed or took too long.
        class Failed < StandardError; end

        # Seconds for a child.
        TIMEOUT = 60
        CHUNK = 65_536
        private_constant :CHUNK

        def initialize(requests:, root:, timeout:, prepare: nil)
          @requests = requests
          @root = root
          @timeout = timeout
          @prepare = prepare
        end

        # @return [Result]
        # @raise [Failed]
        def run(&request)
          result = Result.parse(child { Observation.new(requests: @requests, root: @root).run(&request).to_json })
          result.figures[:pages] = figure { Pages.new.observe(&request) }
          result.figures[:calls] = figure { Calls.new(@root).observe(&request) }
          result
        end

        private

        def figure
          JSON.parse(child { JSON.generate(yield) }, symbolize_names: true)
        end

        # @return [String] what the block, run in a child, returned
        def child(&block)
          reader, writer = IO.pipe
          pid = Process.fork { speak(reader, writer, &block) }
          writer.close
          word, text = listen(reader).split("\n", 2)
          return text if word == "done"

          raise Failed, text || "the child ended without a word"
        ensure
          reader&.close
          finish(pid) if pid
        end

        def speak(reader, writer)
          reader.close
          answer = begin
            @prepare&.call
            "done\n#{yield}"
          rescue Exception => error # rubocop:disable Lint/RescueException
            "failed\n#{error.class}: #{error.message} (#{error.backtrace&.first})"
          end
          writer.write(answer)
          writer.close
        ensure
          exit!(0) # nothing of the application's at_exit
        end

        def listen(reader)
          heard = +""
          deadline = now + @timeout
          loop do
            raise Failed, "a child took more than #{@timeout} s" unless reader.wait_readable([deadline - now, 0].max)

            heard << reader.readpartial(CHUNK)
          end
        rescue EOFError
          heard.force_encoding(Encoding::UTF_8)
        end

        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

        # It has said everything, or never will.
        def finish(pid)
          Process.kill(:KILL, pid)
          Process.wait(pid)
        rescue Errno::ESRCH, Errno::ECHILD
          nil # the application ignores SIGCHLD
        end
      end
    end
  end
end
