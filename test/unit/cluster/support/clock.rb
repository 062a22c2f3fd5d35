# frozen_string_literal: true

require "pando/sys"

module ClusterSupport
  # A clock that advances only when a test says so, however long the machine pauses the test between two lines.
  module Clock
    class << self
      attr_accessor :offset, :stopped_at
    end
    self.offset = 0.0
    A_LITTLE = 1e-6 # seconds
    private_constant :A_LITTLE

    # Prepended to Pando::Sys.
    module Shifted
      def now = (Clock.stopped_at || super) + Clock.offset
    end
    Pando::Sys.singleton_class.prepend(Shifted)

    # Prepended to Pando::Sys::Row: a heartbeat and the beginning of a job have the test's time.
    module Beating
      def beat = super.tap { @offset = Clock.offset }
      def finish_job(*) = super.tap { @offset = Clock.offset }
      def heartbeat = super&.+(@offset || 0.0)
      def start_job(*) = super.tap { @begun = Clock.offset }
      def busy_since(*) = super&.+(@begun || 0.0)
    end
    Pando::Sys::Row.prepend(Beating)

    # Adds a little, as real time does: sums and differences of floats may be slightly too small.
    def elapse(seconds) = Clock.offset += seconds + A_LITTLE
    def now = Pando::Sys.now

    def before_setup
      super
      Clock.stopped_at = Pando::Sys.now
    end

    def after_teardown
      Clock.offset = 0.0
      Clock.stopped_at = nil
      super
    end
  end
end
