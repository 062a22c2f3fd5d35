# frozen_string_literal: true

module Pando
  # Makes Pando the server that `rackup` and `bin/rails server` start, unless `-s`, `-u` or RACKUP_HANDLER names another
  # one. Extends Rackup::Server, in the process of these commands.
  #
  # @api private
  module DefaultHandler
    def self.install
      (defined?(::Rackup::Server) ? ::Rackup::Server : ::Rack::Server).prepend(self)
    end

    # Leaves out programs that serve an app of their own: Pando's workers load a rackup file, and Pando would replace
    # the program.
    def server
      return super if options.values_at(:server, :app, :builder).any? || ENV["RACKUP_HANDLER"] || ENV["RACK_HANDLER"]

      require "pando/rack_handler"
      RackHandler
    end
  end
end
