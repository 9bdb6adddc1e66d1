import { Flex } from '@strapi/design-system';
import { BackButton, Layouts, Page } from '@strapi/strapi/admin';
import { createContext, type ReactNode, useContext, useState } from 'react';
import { createPortal } from 'react-dom';

/** The place in the page's header for a form's buttons. */
const Slot = createContext<HTMLElement | null>(null);

interface FormPageProps {
  title: string;
  subtitle?: ReactNode;
  /** The back button leads there if there is no page before this one. */
  fallback: string;
  /** Shown in the header after the form's buttons. */
  actions?: ReactNode;
  children: ReactNode;
}

/** A page with a form, whose buttons are in the header: it stays in sight while the page is scrolled. */
export const FormPage = ({ title, subtitle, fallback, actions, children }: FormPageProps) => {
  const [slot, setSlot] = useState<HTMLElement | null>(null);
  return (
    <Page.Main>
      <Page.Title>{title}</Page.Title>
      <Layouts.Header
        title={title}
        subtitle={subtitle}
        navigationAction={<BackButton fallback={fallback} />}
        primaryAction={
          <Flex gap={2} wrap="wrap">
            <Flex ref={setSlot} gap={2} />
            {actions}
          </Flex>
        }
      />
      <Layouts.Content>
        <Slot.Provider value={slot}>{children}</Slot.Provider>
      </Layouts.Content>
    </Page.Main>
  );
};

/** Puts a form's buttons into the header of its page. */
export const InHeader = ({ children }: { children: ReactNode }) => {
  const slot = useContext(Slot);
  return slot && createPortal(children, slot);
};
