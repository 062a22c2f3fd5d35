# frozen_string_literal: true

require "pando/sys/mapping"

module Pando
  module ForkSafety
    class Examination
      # Maps an address of a process to the file and the offset in it (proc_pid_maps(5)).
      #
      # @api private
      class MemoryMap
        # Uninitialized variables lie behind the last page of their file.
        BEYOND = 1 << 16
        private_constant :BEYOND

        # @param pid [Integer]
        # @return [MemoryMap] an empty one without permission to read
        def self.of(pid)
          new(File.read("/proc/#{pid}/maps"))
        rescue SystemCallError
          new("")
        end

        # @param text [String] of /proc/PID/maps
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
    end
  end
end
