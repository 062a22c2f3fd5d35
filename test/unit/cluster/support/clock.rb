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

    def elapse(seconds) = Clock.offset += seconds
    def now = Pando::Sys.now

    def teardown
      Clock.offset = 0.0
      super
    end
  end
end
