# frozen_string_literal: true

module Pando
  VERSION = "0.1.0"
end
