# frozen_string_literal: true

require "pando/sys/mapping"

module Pando
  module ForkSafety
    # Describes where another process hangs, and in which lock, as far as /proc and a debugger
    # tell. Any of this may be forbidden (ptrace(2), "ptrace access mode") or take long, so it
    # runs in a process of its own. It loads nothing but itself.
    #
    #   puts ForkSafety::Examination.new(pid).text
    class Examination
      # The most threads to describe.
      THREADS = 16

      def initialize(pid)
        @pid = pid
      end

      def text
        found = threads
        stack = Debugger.stack(@pid)
        stack = found.flat_map(&:stack) if stack.empty?
        [*found.flat_map(&:lines), *stack].join("\n")
      rescue SystemCallError => e
        "/proc/#{@pid} cannot be read: #{e.message}"
      end

      private

      def threads
        map = MemoryMap.of(@pid)
        tasks = Dir.children("/proc/#{@pid}/task").map(&:to_i).sort
        tasks.first(THREADS).map { |task| ThreadAt.new(@pid, task, map) }
      end

      # The native stack from a debugger, if one is installed.
      module Debugger
        # Seconds. Afterwards the debugger is killed, and the process that it looked at runs on.
        PATIENCE = 8
        FRAMES = 40
        # The debugger downloads no symbols and reads no settings from the process's directory.
        COMMANDS = [
          ["eu-stack", "-m", "-n", FRAMES.to_s, "-p"],
          ["gdb", "-nx", "-nh", "-batch", "-iex", "set auto-load off", "-ex", "thread apply all backtrace #{FRAMES}",
           "-p"]
        ].freeze
        # The lines to keep of the debugger's output.
        FRAME = /\A(?:#\d+ |Thread \d|TID )/

        class << self
          # @return [Array<String>] lines; empty without a debugger, or without permission
          def stack(pid, patience = PATIENCE)
            command = COMMANDS.find { |name, *| installed?(name) && installed?("timeout") } or return []
            lines = run([*command, pid.to_s], patience).lines(chomp: true).grep(FRAME)
            lines.empty? ? [] : ["native stack, by #{command.first}:", *lines]
          end

          def installed?(command)
            ENV.fetch("PATH", "").split(":").any? { |folder| File.executable?(File.join(folder, command)) }
          end

          private

          # The output of a killed debugger counts too.
          def run(command, patience)
            IO.popen([{ "DEBUGINFOD_URLS" => nil }, "timeout", "-s", "KILL", patience.to_s, *command,
                      { in: File::NULL, err: File::NULL, chdir: "/" }], "rb", &:read)
          rescue SystemCallError
            "" # there is no memory for another process, for instance
          end
        end
      end

      # Maps an address of a process to the file and the offset in it (proc_pid_maps(5)).
      class MemoryMap
        # Uninitialized variables lie behind the last page of their file.
        BEYOND = 1 << 16
        private_constant :BEYOND

        # @return [MemoryMap] an empty one without permission to read
        def self.of(pid)
          new(File.read("/proc/#{pid}/maps"))
        rescue SystemCallError
          new("")
        end

        def initialize(text)
          @mappings = Sys::Mapping.parse(text).select { |one| one.name.start_with?("/") }
          @bases = @mappings.each_with_object({}) { |one, bases| bases[one.path] ||= one.from }
        end

        # @return [String, nil] "/usr/lib/libx.so+0x4040"; nil for memory that belongs to no file
        def name(address)
          mapping = at(address) or return
          "#{mapping.path}+0x#{(address - @bases.fetch(mapping.path)).to_s(16)}"
        end

        # @return [Boolean] whether the address is code of a file
        def code?(address) = at(address)&.executable? || false

        private

        def at(address)
          @mappings.reverse_each.find { |one| address >= one.from }.then do |one|
            one if one && address < one.to + (one.executable? ? 0 : BEYOND)
          end
        end
      end

      # One thread: the system call it is in (proc_pid_syscall(5)). If that waits for a lock, also the
      # library of the lock and the thread that took it.
      class ThreadAt
        # The number of futex(2) on x86_64 and aarch64.
        FUTEX = { "x86_64" => 202, "aarch64" => 98 }[RUBY_PLATFORM[/\A[^-]+/]]
        # Offset in the GNU C library's 64-bit pthread_mutex_t: lock, count, owner.
        OWNER = 8
        # Bytes of the stack that are searched for return addresses, and how many are shown.
        STACK_BYTES = 16_384
        FRAMES = 12

        def initialize(pid, task, map)
          @pid = pid
          @task = task
          @map = map
        end

        def lines
          number, *arguments = call
          ["thread #{@task} (#{comm(@pid, @task)}): #{doing(number, arguments)}", *lock(number, arguments)]
        end

        # Not unwound: just the words that look like return addresses. They name the libraries without a debugger.
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
