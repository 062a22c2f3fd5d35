# frozen_string_literal: true

module Bench
  module Swarm
    # In the processes that do jobs: tells of each job who did it, as which of its own, and what it took of its thread's
    # CPU time. One small record goes into a pipe that the benchmark reads, so nothing is lost with a process that is
    # killed. A process that was forked from one that had done jobs knows how many.
    #
    # Wrapped around each job by Sidekiq (Middleware) or by a consumer of messages.
    class Meter
      RECORD = "L<5Q<2" # pid, own number, number of its ancestors, the job's place in the mix, failed; CPU ns, clock ns
      SIZE = 36

      # One job.
      #
      # @!attribute pid [Integer]
      # @!attribute number [Integer] which of its process's jobs it was, in the order in which they began, from 1
      # @!attribute ancestors [Integer] jobs that those had done from whom its process was forked, since the boot
      # @!attribute job [Integer] place in the mix
      # @!attribute failed [Boolean]
      # @!attribute cpu [Float] seconds
      # @!attribute at [Float] seconds of the monotonic clock, when it ended
      Done = Struct.new(:pid, :number, :ancestors, :job, :failed, :cpu, :at)

      # What Sidekiq calls.
      class Middleware
        def call(_job, payload, _queue, &) = Meter.instance.measure(payload["place"].to_i, &)
      end

      class << self
        # @return [Meter] of this process
        attr_reader :instance

        # Once, before anything is forked.
        # @param path [String] of the pipe
        def begin(path) = @instance = new(File.open(path, "wb", flags: File::NONBLOCK))

        # @param bytes [String] records
        # @return [Array<Done>]
        def read(bytes)
          (bytes.bytesize / SIZE).times.map do |index|
            *who, failed, cpu, at = bytes.byteslice(index * SIZE, SIZE).unpack(RECORD)
            Done.new(*who, failed == 1, cpu / 1e9, at / 1e9)
          end
        end
      end

      def initialize(pipe)
        @pipe = pipe
        @lock = Mutex.new
        @pid = Process.pid
        @number = @ancestors = 0
      end

      # @param place [Integer] of the job in the mix
      def measure(place)
        number = @lock.synchronize { count }
        failed = 1
        before = clock(Process::CLOCK_THREAD_CPUTIME_ID)
        result = yield
        failed = 0
        result
      ensure
        cpu = clock(Process::CLOCK_THREAD_CPUTIME_ID) - before
        write([@pid, number, @ancestors, place, failed, cpu, clock(Process::CLOCK_MONOTONIC)].pack(RECORD))
      end

      private

      def count
        unless @pid == Process.pid
          @pid = Process.pid
          @ancestors += @number
          @number = 0
        end
        @number += 1
      end

      # In one piece, for it is smaller than PIPE_BUF.
      def write(record)
        @pipe.syswrite(record)
      rescue Errno::EAGAIN
        @pipe.wait_writable && retry
      end

      def clock(which) = Process.clock_gettime(which, :nanosecond)
    end
  end
end
