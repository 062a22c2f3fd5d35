# frozen_string_literal: true

module Bench
  module Lab
    # A Rack middleware in the server under test, the same in each. It records for each request the process that
    # answered it, the request's number in that process, and the CPU time of the process before and after. It appends a
    # small record to the process's own file when the app has returned, so that a process that is killed loses only the
    # requests inside it.
    #
    # In a server with threads, the CPU time is that of all requests under way in the process.
    #
    # From time to time it also records how warm the process is. A process that was forked from one that had served
    # requests knows it: the names of its files contain the number of requests that its ancestors had served.
    class Meter
      RECORD = "L<L<Q<Q<" # the client's number, own number, CPU time before and after in ns
      SIZE = 24
      SEQUENCE = "HTTP_X_LAB"
      WARMTH_AT = [1, 10, 50, 100, 200, 500].freeze # own requests; after that, every thousandth

      # @param folder [String] where the files go
      def initialize(app, folder)
        @app = app
        @folder = folder
        @ancestors = 0
        @number = 0
        @lock = Mutex.new # for servers with threads
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

      # The first request after a fork. The parent's file stays with the parent.
      def settle
        @lock.synchronize do
          next if @pid == Process.pid

          @ancestors += @number
          @number = 0
          @journal&.close
          @journal = File.open("#{name}.journal", "ab")
          @pid = Process.pid # last, because other threads use the rest as soon as the pid is set
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
