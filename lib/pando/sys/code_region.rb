# frozen_string_literal: true

module Pando
  module Sys
    # The room that YJIT has for code in a process: it reserves all that it may ever use, and makes of it from the front
    # what it needs executable. Read from outside, for Ruby does not tell its bound. Bytes.
    class CodeRegion < Struct.new(:used, :bound)
      # Memory without a file, perhaps with a name that its user has given.
      ANONYMOUS = /^(\h+)-(\h+) (r-x|---)\S \h+ \S+ 0 *(?:\[anon:.*)?$/
      # Bounds are given in MiB.
      UNIT = 1024 * 1024
      private_constant :ANONYMOUS, :UNIT

      # @param pid [Integer]
      # @param code [Integer] bytes of code that there are at least: other libraries may have such regions as well
      # @return [CodeRegion, nil] nil: there is none
      # @raise [SystemCallError] it has ended, or is not ours to look at
      def self.of(pid, code = 1) = all(File.read("/proc/#{pid}/maps")).select { |one| one.used >= code }.min_by(&:used)

      # What is written after a fork is a mapping of its own, so a region may be many, one behind the other.
      #
      # @param maps [String]
      # @return [Array<CodeRegion>]
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
