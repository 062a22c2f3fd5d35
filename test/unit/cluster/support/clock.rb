# frozen_string_literal: true

require "pando/sys"

module ClusterSupport
  # Time that passes when a test says so, on top of the real one.
  module Clock
    class << self
      attr_accessor :offset
    end
    self.offset = 0.0

    # Prepended to Pando::Sys.
    module Shifted
      def now = super + Clock.offset
    end
    Pando::Sys.singleton_class.prepend(Shifted)

    # Prepended to Pando::Sys::Row: who gives a sign of life does so at the test's time.
    module Beating
      def beat = super.tap { @offset = Clock.offset }
      def finish_job = super.tap { @offset = Clock.offset }
      def heartbeat = super&.+(@offset || 0.0)
    end
    Pando::Sys::Row.prepend(Beating)

    def elapse(seconds) = Clock.offset += seconds
    def now = Pando::Sys.now

    def teardown
      Clock.offset = 0.0
      super
    end
  end
end
