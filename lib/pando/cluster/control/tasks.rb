# frozen_string_literal: true

require "pando/cluster/control/tasks/drain"
require "pando/cluster/control/tasks/quiet"
require "pando/cluster/control/tasks/refork"
require "pando/cluster/control/tasks/reload"
require "pando/cluster/control/tasks/scale"
require "pando/cluster/control/tasks/stop"
require "pando/cluster/control/tasks/together"
require "pando/cluster/control/tasks/upgrade"

module Pando
  module Cluster
    class Control
      # What clients may ask for that takes its time, a {Task} each.
      #
      # @api private
      module Tasks; end
    end
  end
end
