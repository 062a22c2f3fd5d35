# frozen_string_literal: true

require "pando/cli"
require "pando/version"

module Pando
  module CLI
    # `pando version`: the versions of Pando and of Ruby.
    #
    # @api private
    class Version
      def initialize(_arguments, terminal)
        @out = terminal.out
      end

      # @return [Integer] exit status
      def call
        @out.puts "pando #{VERSION} (ruby #{RUBY_VERSION} #{RUBY_PLATFORM})"
        CLI::OK
      end
    end
  end
end
