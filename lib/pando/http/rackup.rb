# frozen_string_literal: true

require "pando/errors"

module Pando
  module HTTP
    # Loads the application from a rackup file, in a mold that boots.
    module Rackup
      class << self
        # @raise [BootError] if the file or the rack gem is missing, or holds no
        #   application; what the file itself raises comes through as it is
        def load(path)
          path = File.expand_path(path)
          raise BootError, "there is no rackup file #{path}" unless File.file?(path)

          require_rack
          app, = ::Rack::Builder.parse_file(path) # Rack 2 returns options behind it
          return app if app.respond_to?(:call)

          raise BootError, "#{path} holds no application: it needs a line such as `run App`"
        end

        private

        def require_rack
          require "rack"
          require "rack/builder"
        rescue LoadError => e
          raise unless e.path.nil? || e.path.start_with?("rack")

          raise BootError, "a rackup file needs the rack gem: add `gem \"rack\"` to the Gemfile, or `gem install rack`"
        end
      end
    end
  end
end
