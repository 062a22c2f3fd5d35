# frozen_string_literal: true

require "pando/config/types/bytes"
require "pando/config/types/fields"
require "pando/config/types/whole"

module Pando
  class Config
    module Types
      # How much Pando may prefault in a new worker: true for the default, false for nothing, or
      # `{ bytes: 64.mb, milliseconds: 30 }`, as a String "64mb,30".
      #
      # @api private
      class Prefault < Fields
        FIELDS = { bytes: Bytes.new(4096..), milliseconds: Whole.new(1..10_000) }.freeze
        NAMES = { "on" => true, "true" => true, "off" => false, "false" => false }.freeze
        DEFAULT = { bytes: 64 * (1024**2), milliseconds: 30 }.freeze

        def expects = "true, false or a Hash of bytes: and milliseconds:"
      end
    end
  end
end
