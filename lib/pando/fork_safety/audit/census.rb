# frozen_string_literal: true

require "pando/sys"

module Pando
  module ForkSafety
    module Audit
      # The descriptors of a process just before it forked. The child finds this note in its memory. So it
      # knows what it inherited without looking at another process, which may be forbidden.
      #
      # @api private
      class Census
        # @return [Integer] the forker
        attr_reader :pid

        def initialize
          @pid = Process.pid
          @targets = Sys.descriptor_targets
        rescue SystemCallError
          @targets = nil # no descriptor left to look with: the child must assume that it inherited all
        end

        # @return [Boolean] this process is the forker's child, not the forker
        def inherited? = pid != Process.pid

        # @param descriptor [Descriptor] of the child
        # @return [Array<Integer>, nil] the forker's pid, if both have it open now; [] if the forker has
        #   closed it; nil if it was not inherited
        def sharers(descriptor)
          return [pid] unless @targets

          number = @targets.key(descriptor.target) if descriptor.inode
          number ||= descriptor.number if @targets[descriptor.number] == descriptor.target
          return unless number

          case held?(number, descriptor)
          when :another then nil
          when false then []
          else [pid]
          end
        end

        private

        # If it cannot be found out, the descriptor counts as held. Two files or event sources may have one
        # name, so the kernel is asked whether they are the same open file.
        def held?(number, descriptor)
          theirs = Sys.descriptor_of(pid, number)
          return true if theirs.nil?
          return false unless theirs == descriptor.target
          return true if descriptor.inode

          Sys.same_open_file?(pid, number, descriptor.number) == false ? :another : true
        end
      end
    end
  end
end
