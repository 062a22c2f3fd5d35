# frozen_string_literal: true

module Bench
  module Swarm
    # Runs in the processes that do jobs. For each job it records the process, the job's number in it, and the CPU time
    # of its thread. It writes a small record to a pipe that the benchmark reads, so nothing is lost when a process is
    # killed. A process that was forked from one that had done jobs knows how many.
    #
    # Sidekiq (Middleware) or a message consumer wraps it around each job.
    class Meter
      RECORD = "L<5Q<2" # pid, own number, ancestors' jobs, index in the mix, failed; CPU ns, clock ns
      SIZE = 36

      # One job.
      #
      # @!attribute pid [Integer]
      # @!attribute number [Integer] its number among the jobs of its process, in the order in which they began, from 1
      # @!attribute ancestors [Integer] jobs that the ancestors of its process had done since the boot
      # @!attribute job [Integer] index in the mix
      # @!attribute failed [Boolean]
      # @!attribute cpu [Float] seconds
      # @!attribute at [Float] seconds of the monotonic clock at its end
      Done = Struct.new(:pid, :number, :ancestors, :job, :failed, :cpu, :at)

      # The middleware for Sidekiq.
      class Middleware
        def call(_job, payload, _queue, &) = Meter.instance.measure(payload["place"].to_i, &)
      end

      class << self
        # @return [Meter] of this process
        attr_reader :instance

        # Call it once, before the first fork.
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

      # @param place [Integer] index of the job in the mix
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

      # Written in one piece, because it is smaller than PIPE_BUF.
      def write(record)
        @pipe.syswrite(record)
      rescue Errno::EAGAIN
        @pipe.wait_writable && retry
      end

      def clock(which) = Process.clock_gettime(which, :nanosecond)
    end
  end
end
