# frozen_string_literal: true

require "pando/errors"

module Pando
  module Testing
    # A forked process ended before it could take over; the forking process goes on.
    class Stillborn < Error; end
  end
end
