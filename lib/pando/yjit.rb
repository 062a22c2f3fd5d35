# frozen_string_literal: true

module Pando
  # Ruby's own just-in-time compiler, which not every Ruby has, and which the application may enable at any time.
  #
  # @api private
  module YJIT
    # @return [Boolean]
    def self.enabled? = !!(defined?(RubyVM::YJIT) && RubyVM::YJIT.enabled?)

    # @return [Boolean] Ruby 4.0's other compiler runs, beside which this one cannot be enabled
    def self.displaced? = !!(defined?(RubyVM::ZJIT) && RubyVM::ZJIT.enabled?)
  end
end
