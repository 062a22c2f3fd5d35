# frozen_string_literal: true

module Bench
  module Alchemy
    # What is asked of the site: its pages by anyone and by a member, its back office and its API, and now and then a
    # change. The numbers of rows are those that db/content.rb gives out.
    module Traffic
      WRITES = 0.04 # of all requests
      SECTIONS = %w[company products services research careers press].freeze
      PAGES = (1..6)
      WORDS = %w[amber birch delta fjord grove inlet knoll ocean].freeze
      TURBO = "text/vnd.turbo-stream.html, text/html"

      OFFICE = %w[dashboard pages pages?view=list pages/tree pages/%d pages/%d/edit pages/%d/configure pages/%d/info
                  pages/new?parent_id=2 pages/link layoutpages elements?page_version_id=%d
                  elements/new?page_version_id=%d ingredients/1/edit ingredients/2/edit nodes nodes/%d/edit nodes/new
                  pictures pictures?page=2 pictures?size=small pictures/%d pictures/%d/url
                  attachments attachments?page=2 attachments/%d attachments/%d/edit users users?page=2 users/new
                  users/2/edit tags tags/new tags/1/edit tags/autocomplete?term=b languages languages/new
                  languages/1/edit sites sites/1/edit styleguide clipboard?remarkable_type=elements leave help].freeze

      API = %w[pages?page=1&per_page=10 pages?page=2&per_page=10 pages/nested pages/%d
               pages/company pages/products pages/notes/note-%d pages/%d/elements pages/%d/elements/article
               pages/%d/elements/teaser elements/%d elements?page_id=%d ingredients?page_id=%d
               nodes?page=1&per_page=10 attachments?page=1&per_page=20].freeze

      FIELD = "element[ingredients_attributes][0]"
      # Each changes something each time.
      CHANGES = {
        "PATCH" => %W[api/nodes/%d/toggle_folded admin/pages/%d/fold admin/elements/%d/publish
                      admin/ingredients/2?ingredient[alt_text]=Picture+%d
                      admin/elements/1?#{FIELD}[id]=1&#{FIELD}[value]=%d],
        "POST" => %w[admin/pages/%d/publish admin/elements/%d/collapse admin/elements/%d/expand
                     admin/elements?element[name]=article&element[page_version_id]=%d
                     admin/elements/order?element_id=1&position=%d]
      }.freeze

      # @param sessions [Array<Hash{String => String}>] cookie and token of an administrator and of a member
      # @return [Array<Array>] verb, path and headers; %d stands for the number of a row
      def self.targets(sessions)
        admin, member = sessions.map { |session| { "Cookie" => session.fetch("cookie") } }
        get(open) + get(closed, member) + get(office, admin) + get(API.map { |path| "/api/#{path}" }, admin)
      end

      # @return [Array<Array>] verb, path, headers and an empty body
      def self.writes(sessions)
        admin = sessions.first
        headers = { "Cookie" => admin.fetch("cookie"), "X-CSRF-Token" => admin.fetch("token"), "Accept" => TURBO }
        CHANGES.flat_map { |verb, paths| paths.map { |path| [verb, "/#{path}", headers, ""] } }
      end

      def self.get(paths, headers = {}) = paths.map { |path| ["GET", path, headers] }

      def self.open
        ["/", "/de", "/sitemap.xml", "/notes", "/notes/note-%d", "/admin/login", "/attachment/%d/download",
         "/attachment/%d/show", *["", "/de"].flat_map { |language| sections(language) },
         *WORDS.map { |word| "/api/pages?q[name_or_urlname_cont]=#{word}&page=1&per_page=10" }]
      end

      def self.sections(language)
        SECTIONS.flat_map do |section|
          ["#{language}/#{section}", *PAGES.map { |number| "#{language}/#{section}/page-#{number}" }]
        end
      end

      def self.closed = ["/", "/notes/note-%d", "/members", *PAGES.map { |number| "/members/page-#{number}" }]

      def self.office
        [*OFFICE, *WORDS.flat_map { |word| ["pictures?q[name_cont]=#{word}", "attachments?q[name_cont]=#{word}"] },
         *SECTIONS.map { |section| "pages?view=list&q[urlname_cont]=#{section}" }].map { |path| "/admin/#{path}" }
      end
      private_class_method :get, :open, :sections, :closed, :office
    end
  end
end
