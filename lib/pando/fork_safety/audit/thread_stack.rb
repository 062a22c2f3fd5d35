# frozen_string_literal: true

require "rbconfig"
require "pando/sys/mapping"

module Pando
  module ForkSafety
    module Audit
      # Finds the shared object that a thread of this process belongs to, from the addresses on its stack. The
      # outermost address that is not in the C library is where the thread began.
      #
      # @api private
      class ThreadStack
        # The most bytes of a stack to read, and words of the record at its base.
        DEPTH = 524_288
        RECORD = 400
        # A thread may be running when this class looks at it.
        TRIES = 3
        # The C library and the loader start every thread, so they identify none.
        COMMON = %r{/(?:libc|libpthread|ld-linux|ld-musl|libm|libstdc\+\+|libgcc_s|libdl)[-.\w]*\.so|\[vdso\]}
        RUBY = %r{/libruby[-.\w]*\.so}
        private_constant :DEPTH, :RECORD, :TRIES, :COMMON, :RUBY

        def initialize
          @code = []
          @data = []
          Sys::Mapping.parse(File.read("/proc/self/maps")).each { |one| add(one) }
          @lowest = @code.map { |range, _| range.begin }.min
          @highest = @code.map { |range, _| range.end }.max
          @ruby = [File.realpath("/proc/self/exe"), "#{RbConfig::CONFIG["rubyarchdir"]}/"]
        rescue SystemCallError
          @ruby ||= []
        end

        # @param id [Integer] of a thread
        # @return [String, nil] path of the object; nil: the thread is running, or the object is unknown
        def object(id)
          pointer = pointer(id)
          stack = pointer && @data.find { |range| range.cover?(pointer) }
          stack && outermost(words(pointer, stack.end), pointer)
        rescue SystemCallError
          nil
        end

        # @return [Boolean] whether it is Ruby: a timer, a JIT worker, or a thread kept for the next Thread.new
        def ruby?(object) = !object.nil? && (RUBY.match?(object) || object.start_with?(*@ruby))

        private

        def add(mapping)
          range = mapping.from...mapping.to
          if mapping.rights.start_with?("r-x") then @code << [range, mapping.name] unless mapping.anonymous?
          elsif mapping.rights == "rw-p" then @data << range
          end
        end

        # The stack pointer, which the kernel shows for threads that wait (proc(5)).
        def pointer(id)
          TRIES.times do
            fields = File.read("/proc/self/task/#{id}/syscall").split
            return fields[-2].hex if fields.size > 2
          end
          nil
        end

        def words(pointer, base)
          length = [base - pointer, DEPTH].min
          File.open("/proc/self/mem", "rb") { |memory| memory.pread(length - (length % 8), pointer) }.unpack("Q*")
        end

        # At the base lies the C library's record of the thread, with the function in which it began. On some
        # processors the record begins with its own address, twice. The mapping may extend far beyond it.
        def outermost(words, pointer)
          record = (0..(words.size - 3)).find { |at| words[at] == pointer + (at * 8) && words[at + 2] == words[at] }
          words = words.first(record + RECORD) if record
          words.reverse_each do |word|
            next if word < @lowest || word >= @highest

            _, path = @code.find { |range, _| range.cover?(word) }
            return path if path && !COMMON.match?(path)
          end
          nil
        end
      end
    end
  end
end
