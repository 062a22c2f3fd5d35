# frozen_string_literal: true

require "support/programs"
require "support/waiting"

module Support
  # Chromium without a window, for a page of a server.
  class Browser
    include Waiting

    PROGRAM = Programs.find("chromium")
    # Seconds that the browser may take to start, and a page to answer.
    START = 60
    ANSWER = 60

    # @return [String, nil] why there is none
    def self.missing
      return "chromium is not installed" unless PROGRAM

      require "ferrum"
      nil
    rescue LoadError
      "the gem ferrum needs Ruby 3.2"
    end

    # @return [Array<String>] errors and warnings that the page has reported
    attr_reader :complaints

    def initialize(width: 1280, height: 900)
      @complaints = []
      options = { "no-sandbox" => nil, "disable-dev-shm-usage" => nil }
      @ferrum = Ferrum::Browser.new(browser_path: PROGRAM, headless: true, window_size: [width, height],
                                    process_timeout: START, timeout: ANSWER, browser_options: options)
      @ferrum.on("Runtime.exceptionThrown") { |said| @complaints << said.to_s }
      @ferrum.on("Runtime.consoleAPICalled") { |said| @complaints << said["args"].to_s }
      @ferrum.on("Log.entryAdded") { |said| @complaints << said["entry"].slice("text", "url").to_s }
    end

    def open(url) = @ferrum.go_to(url)
    def text = @ferrum.evaluate("document.body.innerText").to_s
    def evaluate(script) = @ferrum.evaluate(script)
    def resize(width, height) = @ferrum.resize(width: width, height: height)
    def quit = @ferrum.quit

    # @param scheme [String] "light" or "dark"
    def prefer(scheme)
      @ferrum.page.command("Emulation.setEmulatedMedia", features: [{ name: "prefers-color-scheme", value: scheme }])
    end

    # @param urls [Array<String>] patterns of those that cannot be reached from now on; none: all can
    def block(*urls) = @ferrum.page.command("Network.setBlockedURLs", urls: urls)

    # @return [Integer] how often the page has asked for this path
    def asked(path) = @ferrum.network.traffic.count { |one| one.url&.end_with?(path) }

    # Presses the button with this text, outside a dialog.
    def press(label)
      click("[...document.querySelectorAll('button')].find((one) => " \
            "one.innerText === #{label.inspect} && !one.closest('dialog'))")
    end

    # Confirms the dialog that is open.
    def confirm = click("document.querySelector('dialog button.primary')")

    # Clicks an element as soon as the page has it. A script does so, because the page may be moving.
    # @param element [String] JavaScript
    def click(element)
      wait_until { @ferrum.evaluate("((found) => { found?.click(); return Boolean(found); })(#{element})") }
    end

    # @return [Array<String>] what axe-core finds wrong
    def inaccessible
      folder = Gem::Specification.find_by_name("axe-core-api").full_gem_path
      @ferrum.execute(File.read(Dir["#{folder}/**/axe.min.js"].first))
      found = @ferrum.evaluate("(await axe.run()).violations.map((one) => " \
                               "`${one.id}: ${one.nodes[0].html} ${one.nodes[0].failureSummary}`)")
      found.is_a?(Array) ? found : raise("axe-core has not run: #{found.inspect}")
    end
  end
end
