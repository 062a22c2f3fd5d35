# frozen_string_literal: true

module Pando
  module ForkSafety
    class Examination
      # One thread: the system call it is in (proc_pid_syscall(5)), and if that waits for a lock, whose
      # lock it is and who took it.
      #
      # @api private
      class ThreadAt
        # futex(2), where the numbers are known: x86_64 and aarch64.
        FUTEX = { "x86_64" => 202, "aarch64" => 98 }[RUBY_PLATFORM[/\A[^-]+/]]
        # Of pthread_mutex_t of the GNU C library on 64 bits: lock, count, owner.
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

        # Not unwound, just what looks like a return address: it names the libraries without a debugger.
        # @return [Array<String>]
        def stack
          _, *arguments = call
          bytes = memory(arguments[-2], STACK_BYTES) if arguments.any?
          words = bytes.to_s.unpack("Q*").select { |word| @map.code?(word) }
          words.first(FRAMES).map { |word| "  on the stack of thread #{@task}: #{@map.name(word)}" }
        end

        private

        # Its number, six arguments, the stack pointer and the program counter.
        # @return [Array<Integer>] empty while it runs, or where this may not be read
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

        # A child's only thread has the same lock in its memory as the one that is not there any more.
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
