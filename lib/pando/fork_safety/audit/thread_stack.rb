# frozen_string_literal: true

require "rbconfig"
require "pando/sys/mapping"

module Pando
  module ForkSafety
    module Audit
      # Tells which shared object a thread of this process belongs to, from the addresses on its
      # stack: the outermost one that is not in the C library is where the thread began.
      #
      # @api private
      class ThreadStack
        # Bytes of a stack that are read, and words of the record at its base.
        DEPTH = 524_288
        RECORD = 400
        # A thread may be running when it is asked.
        TRIES = 3
        # The C library and the loader begin every thread; these say nothing.
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
        # @return [String, nil] path of the object; nil: it runs right now, or cannot be told
        def object(id)
          pointer = pointer(id)
          stack = pointer && @data.find { |range| range.cover?(pointer) }
          stack && outermost(words(pointer, stack.end), pointer)
        rescue SystemCallError
          nil
        end

        # @return [Boolean] Ruby itself: a timer, a worker of the JIT, one kept for the next Thread.new
        def ruby?(object) = !object.nil? && (RUBY.match?(object) || object.start_with?(*@ruby))

        private

        def add(mapping)
          range = mapping.from...mapping.to
          if mapping.rights.start_with?("r-x") then @code << [range, mapping.name] unless mapping.anonymous?
          elsif mapping.rights == "rw-p" then @data << range
          end
        end

        # The stack pointer, which the kernel tells of threads that wait (proc(5)).
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

        # At the base is the C library's record of the thread, with the function it began in. On some
        # processors it begins with its own address, twice; a mapping may go on far beyond.
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
