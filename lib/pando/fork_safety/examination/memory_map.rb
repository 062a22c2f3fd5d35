# frozen_string_literal: true

module Pando
  module ForkSafety
    class Examination
      # Maps an address of a process to the file and the offset in it (proc_pid_maps(5)).
      #
      # @api private
      class MemoryMap
        LINE = %r{\A(\h+)-(\h+) (\S+) \h+ \S+ \d+ +(/.*?)(?: \(deleted\))?$}
        # Uninitialized variables lie behind the last page of their file.
        BEYOND = 1 << 16
        private_constant :LINE, :BEYOND

        Mapping = Struct.new(:from, :to, :code, :file)

        # @param pid [Integer]
        # @return [MemoryMap] an empty one without permission to read
        def self.of(pid)
          new(File.read("/proc/#{pid}/maps"))
        rescue SystemCallError
          new("")
        end

        # @param text [String] of /proc/PID/maps
        def initialize(text)
          @mappings = text.b.each_line.filter_map do |line|
            from, to, rights, file = LINE.match(line)&.captures
            Mapping.new(from.hex, to.hex, rights.include?("x"), file) if from
          end
          @bases = @mappings.each_with_object({}) { |one, bases| bases[one.file] ||= one.from }
        end

        # @return [String, nil] "/usr/lib/libx.so+0x4040"; nil for memory that belongs to no file
        def name(address)
          mapping = at(address) or return
          "#{mapping.file}+0x#{(address - @bases.fetch(mapping.file)).to_s(16)}"
        end

        # @return [Boolean] whether the address is code of a file
        def code?(address) = at(address)&.code || false

        private

        def at(address)
          @mappings.reverse_each.find { |one| address >= one.from }.then do |one|
            one if one && address < one.to + (one.code ? 0 : BEYOND)
          end
        end
      end
    end
  end
end
