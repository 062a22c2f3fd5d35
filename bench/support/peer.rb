# frozen_string_literal: true

require "support/server"

module Bench
  # A server from a gem.
  class Peer < Server
    # @param bundle [Bundle] that contains its gem
    def initialize(bundle:, **options)
      super(**options)
      @bundle = bundle
    end

    private

    # @return [Array<String>] the beginning of its command line
    def executable(name, gem: name) = [Gem.ruby, @bundle.executable(gem, name)]
  end
end
