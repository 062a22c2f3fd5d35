# frozen_string_literal: true

module Pando
  # Ruby's own just-in-time compiler. Some builds of Ruby lack it, and the application may enable it at any time.
  #
  # @api private
  module YJIT
    def self.enabled? = !!(defined?(RubyVM::YJIT) && RubyVM::YJIT.enabled?)

    # @return [Boolean] whether ZJIT, Ruby 4.0's other compiler, runs; then YJIT cannot be enabled
    def self.displaced? = !!(defined?(RubyVM::ZJIT) && RubyVM::ZJIT.enabled?)
  end
end
