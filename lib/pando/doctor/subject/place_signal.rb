# frozen_string_literal: true

module Pando
  module Doctor
    # The signal on which a worker says where it stands, even stuck in C: of the real-time ones, which nobody uses.
    PLACE_SIGNAL = 50
  end
end
