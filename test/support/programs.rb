# frozen_string_literal: true

module Support
  # Programs that a test needs and a machine may lack.
  module Programs
    # @return [String, nil] the path of a program in PATH
    def self.find(name)
      ENV.fetch("PATH").split(":").map { |folder| File.join(folder, name) }.find { |path| File.executable?(path) }
    end
  end
end
