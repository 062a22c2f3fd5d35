# frozen_string_literal: true

module Pando
  # Where this Ruby runs. Pando serves on Linux; elsewhere it installs, and serves for development.
  module Platform
    # @return [Boolean] whether the kernel has what the cluster is made of
    def self.linux? = RUBY_PLATFORM.include?("linux")

    # @return [String] such as "arm64-darwin23"
    def self.name = RUBY_PLATFORM
  end
end
