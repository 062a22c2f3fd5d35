# frozen_string_literal: true

require "pando/doctor/checks/check"
require "pando/doctor/checks/descriptors"
require "pando/doctor/checks/threads"
require "pando/doctor/checks/locks"
require "pando/doctor/checks/endings"
require "pando/doctor/checks/signals"
require "pando/doctor/checks/copies"
require "pando/doctor/checks/growth"
require "pando/doctor/checks/requests"
require "pando/doctor/checks/serving"
require "pando/doctor/checks/sections"
require "pando/doctor/checks/states"

module Pando
  module Doctor
    # What is made of the evidence.
    module Checks
      ALL = [Descriptors, Threads, Locks, Endings, Signals, Copies, Growth, Requests, Serving, States,
             Sections].freeze

      # @return [Array<ForkSafety::Finding>] each fault once
      def self.run(evidence)
        ALL.flat_map { |check| check.new(evidence).findings }
      end
    end
  end
end
