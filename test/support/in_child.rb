# frozen_string_literal: true

require "json"
require_relative "../unit/sys/support/in_child"

module Support
  # SysSupport::InChild for tests of values that are made of Hashes with symbols.
  module InChild
    include SysSupport::InChild

    # @return [Object] what the block returned, as JSON tells it, with symbols for keys
    # @raise [RuntimeError] the block raised
    def in_child = JSON.parse(JSON.generate([super]), symbolize_names: true).first
  end
end
