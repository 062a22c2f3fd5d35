# frozen_string_literal: true

require "pando/errors"

module Pando
  module Measure
    # There is nothing to compare; the message says why, and what to do. The command exits 2.
    class NotMeasured < Error; end
  end
end
