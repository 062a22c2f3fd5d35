# frozen_string_literal: true

module Pando
  module Compat
    # Finds the config file of another server in an application.
    #
    # @api private
    module ConfigFile
      # @return [Array<String>] in the order in which `pando init` looks for them
      NAMES = %w[config/puma.rb config/puma/production.rb config/pitchfork.rb config/unicorn.rb
                 config/unicorn/production.rb pitchfork.conf.rb unicorn.conf.rb puma.rb unicorn.rb].freeze

      module_function

      # @param directory [String]
      # @return [String, nil] the path within the directory
      def find(directory) = NAMES.find { |name| File.file?(File.join(directory, name)) }
    end
  end
end
