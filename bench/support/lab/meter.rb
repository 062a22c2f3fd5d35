# frozen_string_literal: true

module Bench
  module Lab
    # A Rack middleware in the server under test, the same in each: writes down for each request which process answered
    # it, as which of its own requests, and the CPU time of that process before and after. One small record is appended
    # to the process's own file at once, so that a process that is killed has written all of its requests but the last.
    #
    # Of a server with threads the CPU time is that of all requests that its process had under way.
    #
    # It also notes now and then how warm the process is. A process that was forked from one that had served knows it:
    # what its ancestors had served is part of its files' name.
    class Meter
      RECORD = "L<L<Q<Q<" # number of the request at the client, own number, CPU time before and after in ns
      SIZE = 24
      SEQUENCE = "HTTP_X_LAB"
      WARMTH_AT = [1, 10, 50, 100, 200, 500].freeze # own requests, and then each thousandth

      # @param folder [String] where the files go
      def initialize(app, folder)
        @app = app
        @folder = folder
        @ancestors = 0
        @number = 0
        @lock = Mutex.new # of a server with threads
      end

      def call(env)
        settle unless @pid == Process.pid
        number = @number += 1
        before = clock
        @app.call(env)
      ensure
        @journal.syswrite([env[SEQUENCE].to_i, number, before, clock].pack(RECORD))
        note_warmth(number) if WARMTH_AT.include?(number) || (number % 1000).zero?
      end

      private

      def clock = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond)

      # The first request after a fork. The parent's file stays the parent's.
      def settle
        @lock.synchronize do
          next if @pid == Process.pid

          @ancestors += @number
          @number = 0
          @journal&.close
          @journal = File.open("#{name}.journal", "ab")
          @pid = Process.pid # last: other threads wait until all is there
        end
      end

      def name = File.join(@folder, "#{Process.pid}-#{@ancestors}")

      def note_warmth(number)
        jit = defined?(RubyVM::YJIT) && RubyVM::YJIT.enabled? ? RubyVM::YJIT.runtime_stats : {}
        code = jit.fetch(:inline_code_size, 0) + jit.fetch(:outlined_code_size, 0)
        collections = GC.stat
        File.write("#{name}.warmth", "#{number} #{code} #{jit.fetch(:compiled_iseq_count, 0)} " \
                                     "#{collections[:minor_gc_count]} #{collections[:major_gc_count]}\n", mode: "a")
      end
    end
  end
end
