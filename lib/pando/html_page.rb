# frozen_string_literal: true

require "cgi/escape"
require "pando/html_page/style"

module Pando
  # A page for a browser, by itself: nothing in it is fetched from elsewhere, and no script runs in it. What stands in
  # it is escaped by whoever writes it. Of the commands' reports; no server process loads it.
  #
  # @api private
  module HtmlPage
    POLICY = "default-src 'none'; style-src 'unsafe-inline'"

    # @param text [Object] @return [String]
    def self.escape(text) = CGI.escapeHTML(text.to_s.scrub("?"))

    # @param title [String] plain text
    # @param lead [String] HTML below it
    # @param sections [Hash{String => String, nil}] HTML by title; nil: there is none
    # @param style [String] beside {STYLE}
    # @return [String]
    def self.render(title:, lead:, sections:, style: "")
      <<~HTML
        <!DOCTYPE html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta http-equiv="Content-Security-Policy" content="#{POLICY}">
        <title>#{escape(title)}</title>
        <style>#{STYLE}#{style}</style>
        </head>
        <body>
        <h1>#{escape(title)}</h1>
        #{lead}
        #{sections.map { |name, content| section(name, content) }.join("\n")}
        </body>
        </html>
      HTML
    end

    def self.section(name, content) = content && "<section><h2>#{escape(name)}</h2>#{content}</section>"
    private_class_method :section
  end
end
