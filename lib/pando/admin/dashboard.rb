# frozen_string_literal: true

module Pando
  module Admin
    # The files of the dashboard: a page, its styles and its scripts. They hold no data and no secret, so that everybody
    # may load them; what the page shows it asks for itself, with the token if one is needed.
    module Dashboard
      PATH = "/dashboard"
      TYPES = { ".html" => "text/html; charset=utf-8", ".css" => "text/css; charset=utf-8",
                ".js" => "text/javascript; charset=utf-8" }.freeze
      # Nothing is loaded from elsewhere, and no code runs that is not in a file here.
      POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " \
               "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

      # @return [Hash{String => Array(String, String)}] the type and the path of a file by the path of its address
      FILES = Dir[File.join(__dir__, "dashboard/**/*.{html,css,js}")].to_h do |file|
        name = file.delete_prefix(File.join(__dir__, "dashboard"))
        [name == "/index.html" ? PATH : PATH + name, [TYPES.fetch(File.extname(file)), file]]
      end.freeze

      # @param path [String] of the address
      # @return [Array(String, String)] type and content
      def self.read(path)
        type, file = FILES.fetch(path)
        [type, File.read(file, encoding: "UTF-8")]
      end
    end
  end
end
