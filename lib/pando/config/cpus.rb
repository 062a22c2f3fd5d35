# frozen_string_literal: true

require "etc"
require "pando/sys/control_group"

module Pando
  class Config
    # How many CPUs the server may use: those that it may be scheduled on
    # (sched_getaffinity(2)), or fewer if a control group sets a quota, as in
    # most containers.
    #
    # @api private
    module CPUs
      module_function

      # @param group [Sys::ControlGroup]
      # @return [Integer] 1 or more, rounded up
      def count(group: Sys::ControlGroup.new)
        [Etc.nprocessors, group.cpu_quota&.ceil].compact.min.clamp(1, nil)
      end
    end
  end
end
