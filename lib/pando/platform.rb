# frozen_string_literal: true

module Pando
  # The system that this Ruby runs on. Pando serves on Linux. On other systems it can be installed, and serves for
  # development.
  module Platform
    # @return [Boolean] whether the kernel has what a cluster needs
    def self.linux? = RUBY_PLATFORM.include?("linux")

    # @return [String] such as "arm64-darwin23"
    def self.name = RUBY_PLATFORM
  end
end
