# frozen_string_literal: true

module Pando
  module Sys
    # The memory that YJIT has for code in a process, in bytes. YJIT reserves all that it may ever use, and makes it
    # executable from the front as needed. This is read from outside, because Ruby does not tell the limit.
    class CodeRegion < Struct.new(:used, :bound)
      # Memory without a file, possibly named by its owner.
      ANONYMOUS = /^(\h+)-(\h+) (r-x|---)\S \h+ \S+ 0 *(?:\[anon:.*)?$/
      # YJIT's limit is a multiple of one MiB.
      UNIT = 1024 * 1024
      private_constant :ANONYMOUS, :UNIT

      # @param code [Integer] the least bytes of code in the region: other libraries may have similar regions
      # @raise [SystemCallError] the process has ended, or we may not read its memory map
      def self.of(pid, code = 1) = all(File.read("/proc/#{pid}/maps")).select { |one| one.used >= code }.min_by(&:used)

      # Code that is written after a fork has its own mapping, so a region may consist of several adjacent mappings.
      def self.all(maps)
        mappings = maps.scan(ANONYMOUS).map { |from, to, rights| [from.to_i(16), to.to_i(16), rights] }
        neighbours = mappings.slice_when { |one, other| one[1] != other[0] || (one[2] == "---" && other[2] == "r-x") }
        neighbours.map { |run| region(run) }.select { |one| one.used.positive? && (one.bound % UNIT).zero? }
      end

      def self.region(run)
        used = run.select { |_, _, rights| rights == "r-x" }.sum { |from, to| to - from }
        new(used, run.last[1] - run.first[0])
      end
      private_class_method :region
    end
  end
end
