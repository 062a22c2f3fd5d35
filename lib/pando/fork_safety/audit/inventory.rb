# frozen_string_literal: true

require "pando/fork_safety/audit/descriptor"
require "pando/fork_safety/descriptors"
require "pando/sys"

module Pando
  module ForkSafety
    module Audit
      # The descriptors of a process just before it forked. The child finds this note in its memory. So it
      # knows what it inherited without looking at another process, which may be forbidden.
      class Census
        attr_reader :pid

        def initialize
          @pid = Process.pid
          @targets = Sys.descriptor_targets
        rescue SystemCallError
          @targets = nil # no descriptor left to look with: the child must assume that it inherited all
        end

        # @return [Boolean] this process is the forker's child, not the forker
        def inherited? = pid != Process.pid

        # @return [Array<Integer>, nil] the forker's pid, if both have it open now; [] if the forker has
        #   closed it; nil if it was not inherited
        def sharers(descriptor)
          return [pid] unless @targets

          number = @targets.key(descriptor.target) if descriptor.inode
          number ||= descriptor.number if @targets[descriptor.number] == descriptor.target
          return unless number

          theirs = Sys.descriptor_of(pid, number)
          return [pid] if theirs.nil? # it cannot be found out
          return [] unless theirs == descriptor.target

          # Two files or event sources may have one name, so the kernel is asked whether they are the same open file.
          another = descriptor.inode.nil? && Sys.same_open_file?(pid, number, descriptor.number) == false
          another ? nil : [pid]
        end
      end

      # All descriptors of this process, each with its owner. Ruby offers no way from a number to its IO
      # object, so this class walks the heap, but only if there are descriptors to look up.
      class Inventory
        STDIO = (0..2)

        # @return [Array<Descriptor>] by number
        attr_reader :descriptors

        # @param own [Array<Integer>] numbers that the caller takes care of
        # @param outside [Hash{Integer => String}] what was open before the app was loaded
        # @param kept [Array<Integer>] numbers to leave alone
        # @param patterns [Array<String>] of further descriptors to leave alone, see {Descriptor#kept_by?}
        # @raise [SystemCallError] /proc cannot be read
        def initialize(own: [], outside: {}, kept: [], patterns: [])
          @own = own
          @outside = outside
          @kept = kept
          @patterns = patterns
          @descriptors = Sys.descriptors.map { |row| Descriptor.new(row) }.sort_by(&:number)
          @stdio = descriptors.select { |one| STDIO.cover?(one.number) }.map(&:target)
          descriptors.each { |one| one.owner = owner(one) || :native }
        end

        # Finds the IO objects of these, and where they were opened.
        def attribute(some)
          return if some.empty?

          ios = self.class.ios(some.map(&:number))
          some.each do |one|
            one.ios = ios.fetch(one.number, []).sort_by { |io| rank(io, one) }
            next if one.ios.empty?

            one.owner = :ruby if one.owner == :native
            one.location = one.ios.filter_map { |io| Sites.of(io) }.first
          end
          nil
        end

        # Whether this process holds the other end of a pipe or socket pair too.
        def both_ends?(descriptor)
          return pipe_ends[descriptor.target].uniq.size == 2 if descriptor.type == :pipe

          peers[descriptor.inode] == true
        end

        # @return [Hash{Integer => Array<IO>}] the objects of each number that has some
        def self.ios(numbers)
          wanted = numbers.to_h { |number| [number, true] }
          ObjectSpace.each_object(IO).with_object({}) do |io, found|
            number = Descriptors.number(io)
            (found[number] ||= []) << io if wanted[number]
          end
        end

        private

        # A number may have several objects, some from an earlier use of the number. The likeliest comes first.
        def rank(io, descriptor) = io.is_a?(BasicSocket) == descriptor.socket? ? 0 : 1

        def owner(one)
          return :stdio if STDIO.cover?(one.number) || stdio?(one)
          return :pando if @own.include?(one.number)
          return :interpreter if one.reserved?
          return :outside if @outside[one.number] == one.target

          :kept if @kept.include?(one.number) || one.kept_by?(@patterns)
        end

        # A copy of standard output, for example: then the file's position is shared on purpose.
        def stdio?(one) = one.type != :device && @stdio.include?(one.target)

        def pipe_ends
          @pipe_ends ||= descriptors.select { |one| one.type == :pipe }.group_by(&:target)
                                    .transform_values { |ends| ends.map(&:write_only?) }
        end

        # @return [Hash{Integer => Boolean}] of each unnamed socket: whether the other end is here
        def peers
          @peers ||= begin
            inodes = descriptors.select { |one| one.type == :connection && one.unnamed? }.map(&:inode)
            here = inodes.to_h { |inode| [inode, true] }
            inodes.zip(Sys.unix_peers(inodes).to_a).to_h { |inode, peer| [inode, here.key?(peer)] }
          end
        end
      end
    end
  end
end
