# frozen_string_literal: true

require "pando/refork/collector"

module Support
  # For tests of deferred major GCs.
  module Deferral
    # Where Ruby cannot do without them.
    def skip_without_deferral
      reason = Pando::Refork::MajorGC.obstacle
      skip reason if reason
    end
  end
end
