# frozen_string_literal: true

require "io/wait"
require "json"
require "pando/doctor/lazy_state/observation"
require "pando/sys"

module Pando
  module Doctor
    module LazyState
      # Makes each measurement in a forked child of its own, so that it disturbs neither the others nor this process.
      # Owned by {LazyState.examine}, in the process that calls it.
      class ForkedRun
        # A child failed or took too long.
        class Failed < StandardError; end

        # Seconds for a child.
        TIMEOUT = 60
        CHUNK = 65_536
        # `reader` is the pipe with its answer, `deadline` a time of the monotonic clock.
        Child = Struct.new(:pid, :reader, :deadline)

        # See {LazyState.examine}.
        def initialize(timeout:, prepare: nil, parallel: true)
          @timeout = timeout
          @prepare = prepare
          @parallel = parallel
          @children = []
        end

        # @yieldreturn [String] in a child
        # @return [String] the same
        def once(&block)
          answer(child(&block))
        ensure
          @children.each { |one| finish(one) }
        end

        # @param sample [#call] serves the requests for the tables
        def run(root, requests, sample, &request)
          objects = measure { Observation.new(root).run(requests, &request).to_json }
          pages = measure { JSON.generate(PrivateMemory.observe(&sample)) }
          calls = measure { JSON.generate(Calls.observe(CodePlaces.new(root), &sample)) }
          Result.parse(objects.call).tap do |result|
            result.figures[:pages] = table("pages", pages, result)
            result.figures[:calls] = table("calls", calls, result)
          end
        ensure
          @children.each { |one| finish(one) }
        end

        private

        # Starts a child at once; unless parallel, only when its answer is wanted.
        # @return [#call] returns the answer
        def measure(&measurement)
          started = child(&measurement) if @parallel
          -> { answer(started || child(&measurement)) }
        end

        def table(name, measured, result)
          JSON.parse(measured.call, symbolize_names: true)
        rescue Failed => e
          result.figures[:undone] = [result.figures[:undone], "#{name}: #{e.message}"].compact.join("; ")
          nil
        end

        def child(&block)
          reader, writer = IO.pipe
          pid = Process.fork { report(reader, writer, &block) }
          writer.close
          Child.new(pid, reader, Sys.now + @timeout).tap { |one| @children << one }
        end

        # @return [String] the result of the child's block
        def answer(child)
          outcome, text = read(child).split("\n", 2)
          return text if outcome == "done"

          raise Failed, text || "the child ended without an answer"
        end

        def report(reader, writer)
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
          exit!(0) # without the application's at_exit handlers
        end

        def read(child)
          text = +""
          loop do
            left = [child.deadline - Sys.now, 0].max
            raise Failed, "a child took more than #{@timeout} s" unless child.reader.wait_readable(left)

            text << child.reader.readpartial(CHUNK)
          end
        rescue EOFError
          text.force_encoding(Encoding::UTF_8)
        end

        def finish(child)
          child.reader.close
          Process.kill(:KILL, child.pid)
          Process.wait(child.pid)
        rescue Errno::ESRCH, Errno::ECHILD
          nil # the application ignores SIGCHLD
        end
      end

      # Measures how much memory each request makes private, by use. Runs in a forked child whose parent lives, because
      # a page that the child has not written is still shared with the parent.
      module PrivateMemory
        USES = %i[ruby_heap malloc compiled_code library_data stack].freeze # of memory
        REQUESTS = 10

        # @return [Array<Hash{Symbol => Object}>] private bytes by use: after the fork, each request, and a full
        #   garbage collection, which writes to much of the heap that no request has touched
        # @raise [SystemCallError] the kernel does not tell
        def self.observe
          taken = [["fork", Sys.private_memory, nil]]
          1.upto(REQUESTS) do |number|
            began = Sys.now
            yield number
            taken << [number, Sys.private_memory, ((Sys.now - began) * 1000).round(2)]
          end
          GC.start
          taken << ["full GC", Sys.private_memory, nil]
          taken.map do |after, bytes, milliseconds|
            { after: after, total: bytes.sum, **USES.zip(bytes).to_h, milliseconds: milliseconds }.compact
          end
        end
      end

      # Lists the methods that only the first request calls: they set things up. Methods written in C are not seen.
      module Calls
        LATER = 2 # requests that the first one is compared with
        SHOWN = 100

        def self.observe(places)
          first = traced { yield 1 }
          later = Array.new(LATER) { |at| traced { yield at + 2 } }
          known = later.flat_map(&:keys).to_h { |key| [key, true] }
          once = first.reject { |key, _| known[key] || places.pando?(key.first) }
          { first_request: first.size, later_requests: known.size, only_first: once.size, methods: rows(once, places) }
        end

        # @return [Hash{Array(String, Integer) => Array}] owner and name by place
        def self.traced(&request)
          seen = {}
          TracePoint.new(:call) do |point|
            seen[[point.path, point.lineno]] ||= [point.defined_class, point.method_id]
          end.enable(&request)
          seen
        end

        # The application's own methods come first.
        def self.rows(once, places)
          once.sort_by { |(path, line), _| [places.own?(path) ? 0 : 1, path, line] }.first(SHOWN)
              .map do |(path, line), (owner, name)|
            { place: "#{path}:#{line}", method: "#{ClassNames::INSPECT.bind_call(owner).scrub}##{name}" }
          end
        end
      end
    end
  end
end
