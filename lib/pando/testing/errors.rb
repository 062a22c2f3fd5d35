# frozen_string_literal: true

require "pando/errors"

module Pando
  module Testing
    # A process that was forked ended before it could take over; the forker goes on.
    class Stillborn < Error; end
  end
end
