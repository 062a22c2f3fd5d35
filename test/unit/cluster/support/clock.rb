# frozen_string_literal: true

require "pando/sys"

module ClusterSupport
  # Time that passes only when a test says so, however long the machine lets it wait between two lines.
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

    # Prepended to Pando::Sys::Row: who gives a sign of life does so at the test's time.
    module Beating
      def beat = super.tap { @offset = Clock.offset }
      def finish_job = super.tap { @offset = Clock.offset }
      def heartbeat = super&.+(@offset || 0.0)
    end
    Pando::Sys::Row.prepend(Beating)

    # A little more, as it is when time passes by itself: floats that are added and taken away again may be less.
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
