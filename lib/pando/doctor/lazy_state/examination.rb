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
      # Makes the measurements in forked children, each in one of its own: each would show in the others, and none
      # must show in this process.
      #
      # @api private
      class Examination
        # A child failed or took too long.
        class Failed < StandardError; end

        # Seconds for a child.
        TIMEOUT = 60
        CHUNK = 65_536
        # A child, what it writes its answer to, and when it is too late.
        Child = Struct.new(:pid, :reader, :deadline)
        private_constant :CHUNK, :Child

        # See {LazyState.examine}.
        def initialize(requests:, root:, timeout:, prepare: nil, parallel: true)
          @requests = requests
          @root = root
          @timeout = timeout
          @prepare = prepare
          @parallel = parallel
          @children = []
        end

        # @param sample [#call] serves the requests for the tables
        # @return [Result]
        # @raise [Failed]
        def run(sample, &request)
          looks = [-> { Observation.new(requests: @requests, root: @root).run(&request).to_json },
                   -> { JSON.generate(Pages.new.observe(&sample)) },
                   -> { JSON.generate(Calls.new(@root).observe(&sample)) }]
          result_of(*looks.map { |look| starter(look) })
        ensure
          @children.each { |one| finish(one) }
        end

        private

        # @return [#call] which returns the child that looks
        def starter(look)
          started = child(&look) if @parallel
          -> { started || child(&look) }
        end

        # @param objects, pages, calls [#call] which return a child
        def result_of(objects, pages, calls)
          Result.parse(answer(objects.call)).tap do |result|
            result.figures[:pages] = table("pages", pages, result)
            result.figures[:calls] = table("calls", calls, result)
          end
        end

        def table(name, start, result)
          JSON.parse(answer(start.call), symbolize_names: true)
        rescue Failed => e
          result.figures[:undone] = [result.figures[:undone], "#{name}: #{e.message}"].compact.join("; ")
          nil
        end

        # @return [Child] which runs the block
        def child(&block)
          reader, writer = IO.pipe
          pid = Process.fork { speak(reader, writer, &block) }
          writer.close
          Child.new(pid, reader, now + @timeout).tap { |one| @children << one }
        end

        # @return [String] what the block of a child returned
        def answer(child)
          word, text = listen(child).split("\n", 2)
          return text if word == "done"

          raise Failed, text || "the child ended without a word"
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

        def listen(child)
          heard = +""
          loop do
            left = [child.deadline - now, 0].max
            raise Failed, "a child took more than #{@timeout} s" unless child.reader.wait_readable(left)

            heard << child.reader.readpartial(CHUNK)
          end
        rescue EOFError
          heard.force_encoding(Encoding::UTF_8)
        end

        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

        # It has said everything, or never will.
        def finish(child)
          child.reader.close
          Process.kill(:KILL, child.pid)
          Process.wait(child.pid)
        rescue Errno::ESRCH, Errno::ECHILD
          nil # the application ignores SIGCHLD
        end
      end
    end
  end
end
