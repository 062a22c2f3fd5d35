# frozen_string_literal: true

module Pando
  module Sys
    # The room that YJIT has for code in a process: it reserves all that it may ever use, and makes of it from the front
    # what it needs executable. Read from outside, for Ruby does not tell its bound. Bytes.
    class CodeRegion < Struct.new(:used, :bound) # rubocop:disable Style/StructInheritance
      # Memory without a file, perhaps with a name that its user has given.
      ANONYMOUS = /^(\h+)-(\h+) (r-x|---)\S \h+ \S+ 0 *(?:\[anon:.*)?$/
      private_constant :ANONYMOUS

      # @param pid [Integer]
      # @param code [Integer] bytes of code that there are at least: other libraries may have such regions as well
      # @return [CodeRegion, nil] nil: there is none
      # @raise [SystemCallError] it has ended, or is not ours to look at
      def self.of(pid, code = 1) = all(File.read("/proc/#{pid}/maps")).select { |one| one.used >= code }.min_by(&:used)

      # @param maps [String]
      # @return [Array<CodeRegion>]
      def self.all(maps)
        mappings = maps.scan(ANONYMOUS).map { |from, to, rights| [from.to_i(16), to.to_i(16), rights] }
        [*mappings, []].each_cons(2).filter_map do |(from, to, rights), (following, limit, others)|
          next unless rights == "r-x"

          new(to - from, (following == to && others == "---" ? limit : to) - from)
        end
      end
    end
  end
end
