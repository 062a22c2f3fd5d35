# frozen_string_literal: true

module Pando
  module ForkSafety
    class Examination
      # One thread: the system call it is in (proc_pid_syscall(5)). If that waits for a lock, also the
      # library of the lock and the thread that took it.
      #
      # @api private
      class ThreadAt
        # The number of futex(2) on x86_64 and aarch64.
        FUTEX = { "x86_64" => 202, "aarch64" => 98 }[RUBY_PLATFORM[/\A[^-]+/]]
        # Offset in the GNU C library's 64-bit pthread_mutex_t: lock, count, owner.
        OWNER = 8
        # Bytes of the stack that are searched for return addresses, and how many are shown.
        STACK_BYTES = 16_384
        FRAMES = 12

        # @param pid [Integer] @param task [Integer] the thread's number
        # @param map [MemoryMap]
        def initialize(pid, task, map)
          @pid = pid
          @task = task
          @map = map
        end

        # @return [Array<String>]
        def lines
          number, *arguments = call
          ["thread #{@task} (#{comm(@pid, @task)}): #{doing(number, arguments)}", *lock(number, arguments)]
        end

        # Not unwound: just the words that look like return addresses. They name the libraries without a debugger.
        # @return [Array<String>]
        def stack
          _, *arguments = call
          bytes = memory(arguments[-2], STACK_BYTES) if arguments.any?
          words = bytes.to_s.unpack("Q*").select { |word| @map.code?(word) }
          words.first(FRAMES).map { |word| "  on the stack of thread #{@task}: #{@map.name(word)}" }
        end

        private

        # The number of the system call, six arguments, the stack pointer and the program counter.
        # @return [Array<Integer>] empty while the thread runs, or without permission to read
        def call
          words = File.read("/proc/#{@pid}/task/#{@task}/syscall").split
          words.size == 9 ? words.map { |word| Integer(word) } : []
        rescue SystemCallError
          []
        end

        def doing(number, arguments)
          return "in #{kernel || "unknown"}" unless number

          where = @map.name(arguments.last)
          "#{number == FUTEX ? "waits for a lock" : "in system call #{number}"}, #{kernel || "at"} #{where}".strip
        end

        def kernel
          name = File.read("/proc/#{@pid}/task/#{@task}/wchan")
          name unless ["", "0"].include?(name)
        rescue SystemCallError
          nil
        end

        def lock(number, arguments)
          return [] unless number == FUTEX && FUTEX

          address = arguments.first
          ["  the lock is at #{@map.name(address) || format("0x%x", address)}", *owner(address)]
        end

        # The child's memory still names the thread that took the lock, although that thread does not exist there.
        def owner(address)
          holder = memory(address + OWNER, 4)&.unpack1("l")
          return [] unless holder&.positive? && !File.exist?("/proc/#{@pid}/task/#{holder}")

          owner = File.read("/proc/#{holder}/status")[/^Tgid:\s+(\d+)/, 1]
          ["  it was taken by thread #{holder} (#{comm(owner, holder)}) of process #{owner}, before the fork"]
        rescue SystemCallError
          ["  it was taken by thread #{holder}, which is not in this process"]
        end

        def memory(address, bytes)
          File.open("/proc/#{@pid}/mem", "rb") { |file| file.pread(bytes, address) }
        rescue SystemCallError, IOError, RangeError
          nil
        end

        def comm(pid, task)
          File.read("/proc/#{pid}/task/#{task}/comm").b.chomp
        rescue SystemCallError
          "?"
        end
      end
    end
  end
end
