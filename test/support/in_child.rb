# frozen_string_literal: true

require "json"
require_relative "../unit/sys/support/in_child"

module Support
  # SysSupport::InChild for values that consist of Hashes with symbols.
  module InChild
    include SysSupport::InChild

    # @return [Object] the block's return value, converted to JSON and back, with symbols as keys
    # @raise [RuntimeError] the block raised
    def in_child = JSON.parse(JSON.generate([super]), symbolize_names: true).first
  end
end
